"""Tests that run in a simulation: `@pytest.mark.amqp(simulated=True, seeds=200)`."""
