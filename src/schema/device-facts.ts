/** What is known of the devices of a host. `reconciler/decide/rules/choose-backend.ts` decides from it. */
import type { Backend, ProviderKind } from './provider-kinds.ts';

/** Which devices servers of this host can compute with, besides the CPU. */
export interface DeviceFacts {
  /** `/dev/kfd` exists: the compute driver of AMD. */
  readonly kfd: boolean;
  /** A device or the driver of NVIDIA is there. */
  readonly nvidia: boolean;
  /** `/dev/accel` exists: an NPU. */
  readonly accel: boolean;
  /** The kernel driver of each `/dev/dri/renderD*`, such as `amdgpu`. */
  readonly renderDrivers: readonly string[];
  /** What the programs that run on the host itself can compute with. Without an entry, the device files decide. */
  readonly programs: Readonly<Partial<Record<ProviderKind, { readonly name: string; readonly backends: readonly Backend[] }>>>;
}
