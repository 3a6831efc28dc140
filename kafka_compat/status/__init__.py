"""What a cluster is like at a moment, and what is wrong with it: asked, judged, and drawn apart."""
