DROP TRIGGER set_lane_of_delivery ON deliveries;
DROP FUNCTION set_lane_of_delivery();
ALTER TABLE deliveries DROP COLUMN lane;
