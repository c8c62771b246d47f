"""`as_spec` for programs that register Python functions without settings."""

from function_calls.loading.python_functions import as_spec as as_spec
