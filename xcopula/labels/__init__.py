"""Labelled data: coordinates, fields of laws, variables, and the observations read from them."""
