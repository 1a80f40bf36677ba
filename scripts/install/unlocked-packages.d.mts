export function unlockedPackages(
  packages: Readonly<Record<string, object>>,
): readonly { readonly name: string; readonly version: string; readonly parent: string }[];
