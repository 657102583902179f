"""Tables, figures and pages from saved rows, and pictures of graphs."""
