"""Files of graphs that users bring: each kind is read in chunks of rows, every row checked."""
