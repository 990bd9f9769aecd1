"""What lies outside of the process and the database: other servers, files, the process that decodes images."""
