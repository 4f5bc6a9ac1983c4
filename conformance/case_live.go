package conformance

var liveCases []Case
