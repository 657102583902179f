"""The networks: encoders (Eq. 2) and the classifier."""
