"""Networks built without training that classify given sequences exactly."""
