from typing import Any

# Modules without stubs, such as runtime, are of type Any, instead of missing.
def __getattr__(name: str) -> Any: ...
