vcbatch job get nope train -o name
vcbatch job get nope neither
vcbatch job suspend nope train fails-r2 waits
vcbatch job resume nope train
vcbatch job cancel nope train
vcbatch job delete nope train
DENIED=jobs vcbatch job delete train waits
vcbatch cronjob suspend nope nightly
vcbatch queue close root nope research
vcbatch queue open vision nope
vcbatch queue delete nope vision
vcbatch job get nope -w
