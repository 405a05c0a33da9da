"""The functions of the driver that are called, by what they are about."""
