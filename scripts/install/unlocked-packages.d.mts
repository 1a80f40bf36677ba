export function unlockedPackages(
  packages: Readonly<Record<string, { readonly optionalDependencies?: unknown }>>,
): readonly { readonly name: string; readonly version: string; readonly parent: string }[];
