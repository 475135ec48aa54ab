"""What `kvplan check` looks for beside expectations: one file a rule, one row each in `table`."""
