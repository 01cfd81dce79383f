"""Other tools' command lines and files, spoken by us: pure translators, arguments in, files out."""
