"""Device memory that several processes of one host have, and what multiprocessing sends of it."""
