"""The parts of the image cache, one noun a module; `ptx.image_cache` puts them together."""
