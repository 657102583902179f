"""Local web page of a trained model; only this folder imports FastAPI."""
