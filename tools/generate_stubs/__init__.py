"""Makes the type stubs of cuda.bindings from the installed modules.

The modules are compiled, so all that they tell of themselves is their documentation and what their
classes answer. `documentation` reads signatures and sections, `annotations` has the rules from
documented types to Python types, `classes` and `functions` write definitions, and `exceptions` has
what no rule gives.
"""
