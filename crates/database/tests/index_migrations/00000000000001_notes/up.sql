CREATE TABLE notes (id bigint PRIMARY KEY, text text NOT NULL);
