"""The tables and figures of the paper: their runs, measurements, tables and plots."""
