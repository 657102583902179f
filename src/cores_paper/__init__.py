"""The reproduction of the paper, and the comparison of methods, beside the tool `cores`."""
