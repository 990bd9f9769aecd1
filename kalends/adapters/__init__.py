"""Systems outside of the process and the database: other servers, file storage, the image decoder process."""
