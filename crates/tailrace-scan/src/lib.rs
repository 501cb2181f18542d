//! Records to a RecordBatch of the wanted columns.
