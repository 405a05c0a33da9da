"""The command that debugs, through the protocol of editors and through a terminal."""
