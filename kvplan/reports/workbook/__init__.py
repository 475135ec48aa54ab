"""A plan as a workbook whose cells compute (extra ``xlsx``). One file a sheet."""
