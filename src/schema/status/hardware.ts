/** Hardware as models need it, and its sensors. `host/hardware/` reads it; plans and the API use it. */
import { z } from 'zod';
import type { Backend, ProviderKind } from '../slot/provider-kinds.ts';

/** What a pass knows of the machine. */
export interface HostFacts {
  /** Memory available to workloads: total RAM or our container's limit. Undefined: unknown; everything is admitted. */
  readonly memoryTotalBytes: number | undefined;
  readonly memoryAvailableBytes: number | undefined;
  /** Undefined if it is not known, or if the host does not decide, as in a cluster. */
  readonly hardware?: Hardware | undefined;
}

export interface Hardware {
  readonly source: HardwareSource;
  readonly cpu: Cpu;
  /** As the kernel reports it, without limits of our own container. Undefined if it cannot be read. */
  readonly memory: MemoryAmount | undefined;
  /** Sorted by kind and address: `gpu0` has the lowest PCI address, as with `CUDA_DEVICE_ORDER=PCI_BUS_ID`. */
  readonly devices: readonly Device[];
  /** Why devices cannot be seen, as in a container. `devices` is then empty and says nothing about the machine. */
  readonly devicesHidden?: string;
  /** What the model servers that run on the host itself report, by provider. Without an entry, the devices decide. */
  readonly programs: Readonly<Record<ProviderKind, ProgramBackends>>;
}

/** `file` is the path of the recording that took the place of this machine. */
export type HardwareSource = { readonly kind: 'machine' } | { readonly kind: 'recording'; readonly file: string; readonly about: string };

export interface Cpu {
  /** As the kernel or the vendor names it; undefined where it does not, as on some ARM boards. */
  readonly model?: string;
  /** Node's name of the architecture: `x64`, `arm64`. */
  readonly architecture: string;
  /** Logical CPUs. */
  readonly threads: number;
  /** Physical cores, if known. */
  readonly cores?: number;
}

export interface MemoryAmount {
  readonly totalBytes: number;
  /** What can be allocated without swapping. */
  readonly availableBytes: number;
}

export const DEVICE_VENDORS = ['amd', 'nvidia', 'intel', 'apple', 'other'] as const;
export type DeviceVendor = (typeof DEVICE_VENDORS)[number];

/** Everything but the CPU that a model server can compute with. */
export interface Device {
  /** `gpu0`, `gpu1`, `npu0`: stable as long as no device is added or removed. */
  readonly id: string;
  readonly kind: 'gpu' | 'npu';
  readonly vendor: DeviceVendor;
  /** Display name, e.g. `NVIDIA GeForce RTX 3090`. */
  readonly name?: string;
  /** `0000:c4:00.0` */
  readonly pciAddress?: string;
  /** The kernel driver: `amdgpu`, `nvidia`, `i915`, `xe`, `amdxdna`. */
  readonly driver?: string;
  /** What programs are built for: `gfx1151` with AMD, `sm_86` with NVIDIA. */
  readonly architecture?: string;
  /** Its device file: `/dev/dri/renderD128`, `/dev/accel/accel0`. */
  readonly path?: string;
  /** Never `cpu`. Empty if no backend can use it. */
  readonly backends: readonly Backend[];
  /** Why a usual backend of this vendor is missing in `backends`, as a clause: `the GPU uses the driver "nouveau"`. */
  readonly unavailable?: Readonly<Partial<Record<Backend, string>>>;
  /** Undefined if it cannot be read. */
  readonly memory: DeviceMemory | undefined;
  /** Whether it computes in the memory of the host, wholly or beyond `memory.dedicatedBytes`. */
  readonly unified: boolean;
}

/** GPUs that a slot names. */
export const DeviceNames = z
  .array(
    z
      .string()
      .max(12)
      .regex(
        /^(gpu[0-9]{1,2}|[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])$/,
        'Write an id such as "gpu0", or a PCI address such as "0000:01:00.0"',
      ),
  )
  .min(1)
  .max(64);

export interface DeviceMemory {
  /** Usable memory. For a unified device: `dedicatedBytes` plus the part of host memory that it may use. */
  readonly totalBytes: number;
  /** For a unified device at most the host's available memory plus the free part of `dedicatedBytes`. */
  readonly freeBytes: number;
  /** The driver does not report used memory: `freeBytes` equals `totalBytes`. */
  readonly useUnknown?: true;
  /**
   * With a unified device: what the firmware sets aside for it, which `Hardware.memory` does not contain
   * (`mem_info_vram_total` of amdgpu). Only the rest of `totalBytes` counts against the memory of the host. Default: 0.
   * With other devices, all of the memory is its own, and this is undefined.
   */
  readonly dedicatedBytes?: number;
  /** The part of `dedicatedBytes` that is not in use. */
  readonly dedicatedFreeBytes?: number;
}

/** The part of `Hardware` without free memory, which stays the same while servers come and go. */
export interface Machine extends Omit<Hardware, 'memory' | 'devices'> {
  readonly memory: Pick<MemoryAmount, 'totalBytes'> | undefined;
  readonly devices: readonly MachineDevice[];
}

export interface MachineDevice extends Omit<Device, 'memory'> {
  readonly memory: Omit<DeviceMemory, 'freeBytes' | 'dedicatedFreeBytes'> | undefined;
}

/** What one program can compute with. */
export interface ProgramBackends {
  /** Path of the program, for messages. */
  readonly name: string;
  readonly backends: readonly Backend[];
  /** Why a backend is missing, as a clause that the program states itself. */
  readonly unavailable?: Readonly<Partial<Record<Backend, string>>>;
}

const MAX_ENTRIES = 5000;
const MAX_TEXT = 256 * 1024;
const Text = z.string().max(MAX_TEXT);
const FilePath = z.string().startsWith('/', 'Use an absolute path').max(1000);
const Texts = z.record(FilePath, Text).refine((all) => Object.keys(all).length <= MAX_ENTRIES, 'Use fewer files');

/**
 * A recording of a machine: everything that the hardware probe read from it, as JSON. `svcctl hardware record` writes
 * one, and `SVC_HARDWARE_FILE` puts one in the place of the machine. It contains no serial numbers, no UUIDs and no
 * host name, because the probe does not keep them.
 */
export const HardwareRecordingSchema = z.strictObject({
  format: z.literal(1),
  about: z.string().max(1000).describe('Which machine this is, and where its facts come from'),
  platform: z.string().max(40).describe('As Node names it: `linux`, `darwin`'),
  architecture: z.string().max(40).describe('As Node names it: `x64`, `arm64`'),
  memory: z
    .strictObject({ total_bytes: z.int().min(0), available_bytes: z.int().min(0) })
    .optional()
    .describe('Used where neither "/proc/meminfo" nor a tool reports the memory'),
  files: Texts.describe('The text of each file, by its path'),
  links: Texts.describe('The last part of what each symbolic link points to, by its path'),
  present: z.array(FilePath).max(MAX_ENTRIES).describe('Device files and other files whose text is of no interest'),
  tools: z.record(z.string().max(1000), Text).describe('What each command printed, by the command with its arguments'),
});

export type HardwareRecording = z.infer<typeof HardwareRecordingSchema>;

// ---- energy ----

/** `host`: processors with their memory and integrated GPUs. `gpu`: GPUs with memory of their own. */
export const ENERGY_DEVICES = ['host', 'gpu'] as const;
export type EnergyDevice = (typeof ENERGY_DEVICES)[number];

export interface SensorReading {
  /** Unique: `RAPL package-0`, `amdgpu 0000:03:00.0`, `nvidia-smi 0000:01:00.0`. */
  readonly source: string;
  readonly device: EnergyDevice;
  /** Monotonic milliseconds. */
  readonly at: number;
  /** A counter in microjoules, which begins at 0 again after `rangeUj`. Undefined: `powerUw` is known, or nothing. */
  readonly energyUj?: number | undefined;
  readonly rangeUj?: number | undefined;
  /** Microwatts. */
  readonly powerUw?: number | undefined;
  /** Why it does not count; undefined: it does. */
  readonly problem?: string | undefined;
}

/** Answers within some seconds, and never rejects. `nvidia`: whether `nvidia-smi` may be run. */
export type ReadEnergy = (wanted: { readonly nvidia: boolean }) => Promise<readonly SensorReading[]>;
