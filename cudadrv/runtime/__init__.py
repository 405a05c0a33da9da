"""The runtime layer, after gam: which devices there are, what work is worth them, and set-up."""
