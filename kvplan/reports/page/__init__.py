"""A plan as one self-contained page (extra ``html``): no script, nothing from the network."""
