"""The networks: encoder (Eq. 2), classifier, policy, critic, and a classifier behind a policy."""
