"""The emulator beside a GPU: the same PTX and the same inputs on both, compared bit for bit."""
