
PâM"
*main
4@€€€€€€PZ'HXM²user_annotationºProfilerStep#1
)@‘Î€€€€€PZHXM²cpu_opºaten::linear
%@¡œ€€€€PZHXM²cpu_opºaten::mm
@á§’€€€€PZHXM
@µ˜€€€€PZHXM
'@¡Â€€€€PZHXM²cpu_opº
aten::gelu
@¡÷¶€€€€PZHXM
@Á„½€€€€PZHXM