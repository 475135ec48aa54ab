"""Memory that is really allocated, beside what a plan says. The only room that imports torch.

Nothing here is imported before a measurement is asked for, and `needs_torch.check` comes first.
"""
