"""The library of BASIC scripts: which there are, what was compiled of them, and where that is kept. How a script is run
is the affair of function_calls/scripts."""
