"""pytest plugin of fakeamqp: fixtures, marker and options."""
