"""Tensor maps: device arrays as the tensor memory accelerator copies them."""
