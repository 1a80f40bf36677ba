/**
 * What `flm validate --json` says about kernel, driver, firmware and locked memory. It prints the limit of its own
 * process, which the service has passed on. FastFlowLM 0.9.45 to 1.0.5 print these fields. Pure.
 */
import { z } from 'zod';
import { parseJson } from '../../../platform/decide/parse-json.ts';

const Flag = z.boolean().optional().catch(undefined);
const Validation = z.object({
  ready: z.boolean(),
  kernel: z.string().max(100).catch('unknown'),
  /** False for an old driver as well. */
  kernel_ok: Flag,
  drm_version: z.string().max(100).optional().catch(undefined),
  amd_device_found: Flag,
  all_fw_ok: Flag,
  enough_cols: Flag,
  memlock_ok: Flag,
  memlock_limit: z
    .union([z.string().max(100), z.number()])
    .optional()
    .catch(undefined),
});

export type NpuValidation = z.output<typeof Validation>;

/** Undefined: no such report. Other lines may come before it. */
export const parseValidation = (stdout: string): NpuValidation | undefined =>
  Validation.safeParse(parseJson(stdout.slice(Math.max(0, stdout.indexOf('{'))))).data;

/** A clause with every cause and its fix. `name`: of the program. */
export function whyNotReady(name: string, found: NpuValidation): string {
  const { memlock_limit: limit = 'unknown' } = found;
  const causes = [
    found.kernel_ok === false && found.drm_version === undefined ? [`the kernel is ${found.kernel}: use 6.17 or newer`] : [],
    found.kernel_ok === false && found.drm_version !== undefined
      ? [`the kernel is ${found.kernel} and its driver "amdxdna" ${found.drm_version}: use a kernel from 6.17 and a driver from 0.6`]
      : [],
    found.amd_device_found === false ? ['no NPU is found: load the driver "amdxdna" (kernel 6.17, or its package)'] : [],
    found.all_fw_ok === false ? ['the firmware of the NPU is too old: update the package linux-firmware'] : [],
    found.enough_cols === false ? ['the NPU has too few columns: XDNA 2 is needed'] : [],
    found.memlock_ok === false
      ? [
          `locked memory is limited to ${limit} bytes, and 100 MiB are needed: set "LimitMEMLOCK=infinity" in the unit, or "ulimit -l unlimited"`,
        ]
      : [],
  ].flat();
  return causes.length === 0 ? `${name} reports that the NPU is not ready` : `${name} reports: ${causes.join('; ')}`;
}
