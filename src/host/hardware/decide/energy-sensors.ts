/** Which files of the kernel, and which lines of `nvidia-smi`, tell how much energy the machine uses. Pure. */
import type { SensorReading } from '../../../schema/status/hardware.ts';
import { sysfsAddress } from './pci-devices.ts';

const RAPL = 'RAPL ';
const PACKAGE_ZONE = /^intel-rapl(?:-[a-z]+)?:\d+$/;

/**
 * Picks the zones that count, from their directories with what their files `name` say: each package once, although
 * `intel-rapl-mmio` may show it again, and its memory, which the package leaves out. `core` and `uncore` are parts of
 * the package, and the package is a part of `psys`. https://docs.kernel.org/power/powercap/powercap.html
 */
export function pickRaplZones(names: ReadonlyMap<string, string>): readonly { readonly zone: string; readonly source: string }[] {
  const packages = new Map<string, string>();
  for (const [zone, name] of [...names].toSorted(([one], [other]) => one.length - other.length || (one < other ? -1 : 1)))
    if (PACKAGE_ZONE.test(zone) && name.startsWith('package-') && !packages.has(name)) packages.set(name, zone);
  return [...packages].flatMap(([name, zone]) => {
    const memory = [...names].filter(([each, what]) => what === 'dram' && each.startsWith(`${zone}:`));
    return [{ zone, source: RAPL + name }, ...memory.map(([each]) => ({ zone: each, source: `${RAPL}${name} dram` }))];
  });
}

/** RAPL counts an integrated GPU as a part of its package. */
export function withoutDoubles(readings: readonly SensorReading[]): readonly SensorReading[] {
  const isRapl = ({ source }: SensorReading): boolean => source.startsWith(RAPL);
  if (!readings.some((each) => isRapl(each) && each.problem === undefined)) return readings;
  return readings.map((each) =>
    each.device === 'gpu' || isRapl(each)
      ? each
      : { source: each.source, device: each.device, at: each.at, problem: each.problem ?? 'included in RAPL' },
  );
}

/** Drivers whose files in hwmon tell the energy or the power of a GPU. */
export const GPU_DRIVERS: ReadonlySet<string> = new Set(['amdgpu', 'i915', 'xe']);
/** The first one that can be read: a counter is exact, and an average better than a moment. */
export const GPU_FILES = ['energy1_input', 'energy2_input', 'power1_average', 'power1_input'] as const;
/** Only integrated GPUs have it: the voltage of their northbridge. https://docs.kernel.org/gpu/amdgpu/thermal.html */
export const APU_LABEL = 'vddnb';

/** Undefined if it is negative, no number, or too large to be exact. */
export function parseAmount(text: string | undefined): number | undefined {
  const amount = /^\d{1,16}$/.test(text ?? '') ? Number(text) : Number.NaN;
  return Number.isSafeInteger(amount) ? amount : undefined;
}

/** https://docs.nvidia.com/deploy/nvidia-smi/index.html */
export const NVIDIA_POWER = ['nvidia-smi', '--query-gpu=pci.bus_id,power.draw', '--format=csv,noheader,nounits'] as const;
const MOST_GPUS = 64;

/** Lines such as `00000000:01:00.0, 45.32`, in watts. Some GPUs and virtual machines have `[N/A]`. */
export function parseNvidiaPower(output: string, at: number): readonly SensorReading[] {
  return output.split('\n', MOST_GPUS).flatMap((line) => {
    const [bus = '', power = ''] = line.split(',').map((cell) => cell.trim());
    const address = sysfsAddress(bus);
    if (address === undefined) return [];
    const watts = /^\d{1,6}(?:\.\d{1,6})?$/.test(power) ? Number(power) : undefined;
    const known = watts === undefined ? { problem: 'not reported' } : { powerUw: Math.round(watts * 1e6) };
    return [{ source: `nvidia-smi ${address}`, device: 'gpu', at, ...known }];
  });
}
