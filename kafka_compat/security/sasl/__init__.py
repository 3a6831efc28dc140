"""How clients prove who they are by SASL: a file per mechanism, and the exchange that carries them."""
