"""A gradient step of Eq. (6); on a GPU it is recorded once and replayed from then on."""

from jaxtyping import Float
from torch import Tensor
from torch.optim import Optimizer
from torch_geometric.data import Batch

from cores.graphs.padding import Capacity, PaddedBatch
from cores.models.classifier import Classifier
from cores.models.network import GraphModel
from cores.models.recording import Recording


class Step:
    """A gradient step of a model on a batch.

    Args:
        model: The model.
        optimizer: Of its weights.
        class_weights: In the loss.
    """

    def __init__(
        self, model: GraphModel, optimizer: Optimizer, class_weights: Tensor | None = None
    ) -> None:
        self.model, self.optimizer, self.class_weights = model, optimizer, class_weights

    def __call__(self, batch: Batch) -> Float[Tensor, ""]:
        """Take it; returns the loss before."""
        self.optimizer.zero_grad()
        loss = self.model.loss(batch, self.class_weights)
        loss.backward()
        self.optimizer.step()
        return loss.detach()


class RecordedStep(Step):
    """The same on a GPU, recorded: batches are padded to one size.

    One that does not fit takes an ordinary step.
    """

    def __init__(
        self, model: GraphModel, optimizer: Optimizer, class_weights: Tensor | None = None
    ) -> None:
        super().__init__(model, optimizer, class_weights)
        self._padded: PaddedBatch | None = None
        self._recording = Recording(self._on_padded)

    def __call__(self, batch: Batch) -> Float[Tensor, ""]:
        """Take it; the loss that is returned lasts until the next one."""
        if self._padded is None:
            self._padded = PaddedBatch(Capacity.around(batch), batch)
        if not self._padded.holds(batch):
            return super().__call__(batch)
        self._padded.load(batch)
        return self._recording()

    def _on_padded(self) -> Tensor:
        assert self._padded is not None
        return super().__call__(self._padded.batch)


def training_step(
    model: GraphModel, optimizer: Optimizer, class_weights: Tensor | None = None
) -> Step:
    """The quickest step for a model where it is."""
    on_gpu = next(model.parameters()).is_cuda
    kind = RecordedStep if on_gpu and recordable(model) else Step
    return kind(model, optimizer, class_weights)


def recordable(model: GraphModel) -> bool:
    """Whether a step of a model has the same shapes every time."""
    return isinstance(model, Classifier) and model.encoder.fixed_shapes
