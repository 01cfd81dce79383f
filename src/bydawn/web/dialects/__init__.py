"""The endpoints that other tools' documents name, each in a server that its own command started."""
