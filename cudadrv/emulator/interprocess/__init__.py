"""What emulators of several processes of one host share, and the handles that name it."""
