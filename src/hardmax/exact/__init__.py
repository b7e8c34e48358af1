"""Networks built without training that classify given sequences exactly."""

from hardmax.exact.certificate import Certificate as Certificate
from hardmax.exact.construct import construct as construct
from hardmax.exact.interpolate import Interpolation as Interpolation
from hardmax.exact.interpolate import interpolate as interpolate
from hardmax.exact.network import Network as Network
from hardmax.exact.separate import ConflictError as ConflictError
from hardmax.exact.separate import PrecisionError as PrecisionError
