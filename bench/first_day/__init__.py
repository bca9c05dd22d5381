"""What a store answers before anybody has calibrated its gate."""
