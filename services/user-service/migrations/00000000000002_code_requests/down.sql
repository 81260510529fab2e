DROP TABLE code_requests;
