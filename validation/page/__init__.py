"""The tables of `validation/README.md`; `validation/accuracy.py` puts them there."""
