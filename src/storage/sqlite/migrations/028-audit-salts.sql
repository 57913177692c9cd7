-- Random characters that the digest of a subject is over, erased together with the subject: a digest of the name alone lets anybody try
-- names until one fits. Entries of before have none.
alter table audit_entry add column subject_salt text;
