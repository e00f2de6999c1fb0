"""PyTorch: what torch.profiler recorded (needs torch for profiles that are not yet a file)."""
import os
import tempfile


def profile(recorded, **options):
    """Where the time of a torch.profiler.profile object, or of the file that its
    export_chrome_trace wrote, went. The options are those of scalemodel.profile."""
    import scalemodel
    if isinstance(recorded, (str, os.PathLike)):
        return scalemodel.profile(os.fspath(recorded), **options)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        recorded.export_chrome_trace(path)
        return scalemodel.profile(path, **options)
