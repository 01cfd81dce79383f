"""The web page and its API: one server for all loops of a user. It owns none of them."""
