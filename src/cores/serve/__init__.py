"""A page on this machine on which a trained model can be asked; FastAPI is imported here alone."""
