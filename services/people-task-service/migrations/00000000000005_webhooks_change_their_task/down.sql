DROP TRIGGER touch_task ON webhooks;
DROP FUNCTION touch_task;
