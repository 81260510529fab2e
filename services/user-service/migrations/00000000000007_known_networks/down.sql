DROP INDEX users_by_password_cost;
DROP TABLE known_networks;
