-- The keys are there from when the load begins: one that is not when it ends was
-- deleted meanwhile.
keep_tags(sequence)
